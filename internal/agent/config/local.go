package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/mesh-agent/mesh-agent/pkg/publish"
)

// LocalConfig says where the description of the own cluster comes from, and what follows from it.
type LocalConfig struct {
	Manifests        string `mapstructure:"local-manifests" help:"a directory of Kubernetes manifests that describe the own cluster, watched"`
	Kubernetes       bool   `mapstructure:"kubernetes" help:"the Kubernetes API describes the own cluster"`
	Kubeconfig       string `mapstructure:"kubeconfig" help:"how to reach it; in a pod its service account does when this is not given"`
	Labels           string `mapstructure:"labels" help:"which labels of pods make their identities: prefixes of keys, separated by spaces, '!' before those to leave out; what Cilium takes when not given"`
	GlobalNamespaces bool   `mapstructure:"clustermesh-default-global-namespace" help:"namespaces that say nothing about it export their services and pods"`
}

func (c LocalConfig) validate(note func(flag string, err error)) {
	if c.Manifests != "" && c.FromKubernetes() {
		note("local-manifests/kubernetes", errors.New("one source describes the own cluster: give a directory or the Kubernetes API, not both"))
	}
	if info, err := os.Stat(c.Manifests); err == nil && !info.IsDir() {
		note("local-manifests", fmt.Errorf("%s is not a directory: give the one that holds the manifests", c.Manifests))
	}
	if c.Kubeconfig != "" {
		if _, err := os.ReadFile(c.Kubeconfig); err != nil {
			note("kubeconfig", err)
		}
	}
	_, err := publish.NewLabelFilter(c.Labels)
	note("labels", err)
}

// FromKubernetes tells whether the Kubernetes API is the source.
func (c LocalConfig) FromKubernetes() bool { return c.Kubernetes || c.Kubeconfig != "" }

// Given tells whether there is a source at all.
func (c LocalConfig) Given() bool { return c.DescribedBy() != "" }

// DescribedBy names the source; empty when there is none.
func (c LocalConfig) DescribedBy() string {
	switch {
	case c.Manifests != "":
		return c.Manifests
	case c.FromKubernetes():
		return "the Kubernetes API"
	}
	return ""
}
