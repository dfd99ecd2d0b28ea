package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/mesh-agent/mesh-agent/internal/own/publish"
)

// LocalConfig are the settings of the source of the own cluster's description, and of its use.
type LocalConfig struct {
	Manifests        string `mapstructure:"local-manifests" modes:"run operate" help:"directory of Kubernetes manifests that describe the own cluster; the agent watches it"`
	Kubernetes       bool   `mapstructure:"kubernetes" modes:"run operate" help:"read the description of the own cluster from the Kubernetes API"`
	Kubeconfig       string `mapstructure:"kubeconfig" modes:"run operate" help:"kubeconfig file for the Kubernetes API; default: the service account of the pod"`
	Labels           string `mapstructure:"labels" modes:"run operate" help:"labels of pods that are part of identities: key prefixes, separated by spaces, with '!' for exclusions; default: the rules of Cilium"`
	GlobalNamespaces bool   `mapstructure:"clustermesh-default-global-namespace" modes:"run operate" help:"export the services and pods of namespaces without the annotation clustermesh.cilium.io/global"`
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

// FromKubernetes reports whether the Kubernetes API is the source.
func (c LocalConfig) FromKubernetes() bool { return c.Kubernetes || c.Kubeconfig != "" }

// Given reports whether there is a source at all.
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
