package chart

import (
	"embed"
	"fmt"
	"path"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/strvals"
)

// plain holds a template for each plain manifest: its comments, and the parts that it takes from
// the chart's templates. A chart has no use for patches; their templates use the
// same helpers as the chart's templates.
//
//go:embed plain
var plain embed.FS

// plainValues are the values that a plain manifest is rendered with, where they are not those
// of the chart.
func plainValues(name string) string {
	return map[string]string{
		"kubernetes.yaml":     "agent.kubernetes=true",
		"operate.yaml":        "operate.enabled=true",
		"endpointslices.yaml": "operate.enabled=true,operate.endpointSlices=true",
		"mcs.yaml":            "operate.enabled=true,operate.mcsAPI.enabled=true",
		"mcs-crds.yaml":       "operate.enabled=true,operate.mcsAPI.enabled=true,operate.mcsAPI.installCRDs=true",
		"dns.yaml":            "services.dns.enabled=true,agent.dns.enabled=true,agent.dns.host=0.0.0.0",
		"mirror.yaml":         "mirror.enabled=true",
		"identities.yaml":     "identities.mode=crd",
	}[name]
}

// renderedFrom is the first line of every plain manifest.
const renderedFrom = "# Rendered from deploy/chart by `make manifests`: change it there.\n#\n"

// Plain returns the plain manifests of deploy/, by the names of their files.
func Plain(c *chartv2.Chart) (map[string]string, error) {
	entries, err := plain.ReadDir("plain")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if all[name], err = plainManifest(c, name); err != nil {
			return nil, fmt.Errorf("deploy/%s: %w", name, err)
		}
	}
	return all, nil
}

func plainManifest(c *chartv2.Chart, name string) (string, error) {
	text, err := plain.ReadFile(path.Join("plain", name))
	if err != nil {
		return "", err
	}
	values, err := strvals.Parse(plainValues(name))
	if err != nil {
		return "", err
	}
	with := *c
	with.Templates = append(slices.Clone(c.Templates), &common.File{Name: path.Join("templates", "plain", name), Data: text})
	texts, err := Render(&with, values)
	return renderedFrom + texts[path.Join("plain", name)], err
}
