// Package chart renders the Helm chart of deploy/chart with Helm's own library, and the plain
// manifests of deploy/ from it. Its tests lint the chart, render it with every values file of
// values/, and install, upgrade, roll back and uninstall it in a real Kubernetes API server:
//
//	make manifests    # write deploy/*.yaml and deploy/chart/files again
//	make chart        # the tests
package chart

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// Namespace is that of the plain manifests.
const Namespace = "kube-system"

// Render renders the templates of a chart as an installation in [Namespace] would, by their
// names below templates/. Empty results, and files of helper templates, are left out.
// A value that the schema refuses is an error that names it.
func Render(c *chartv2.Chart, values map[string]any) (map[string]string, error) {
	options := common.ReleaseOptions{Name: c.Name(), Namespace: Namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values of the chart %s: %w", c.Name(), err)
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("render the chart %s: %w", c.Name(), err)
	}
	texts := map[string]string{}
	for name, text := range rendered {
		name = strings.TrimPrefix(name, path.Join(c.Name(), "templates")+"/")
		if text = strings.TrimSpace(text); text != "" && path.Ext(name) == ".yaml" {
			texts[name] = text + "\n"
		}
	}
	return texts, nil
}

// Documents are the YAML documents of a text, without those that hold nothing.
func Documents(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n---\n"), func(one string) bool { return strings.TrimSpace(one) == "" })
}
