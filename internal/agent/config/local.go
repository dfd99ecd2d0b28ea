package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/mesh-agent/mesh-agent/internal/own/publish"
)

// LocalConfig are the settings of the source of the own cluster's description, and of its use.
type LocalConfig struct {
	Manifests        string `flag:"local-manifests" modes:"run operate" help:"directory of Kubernetes manifests that describe the own cluster; the agent watches it"`
	Kubernetes       bool   `flag:"kubernetes" modes:"run operate" help:"read the description of the own cluster from the Kubernetes API"`
	Kubeconfig       string `flag:"kubeconfig" modes:"run operate" help:"kubeconfig file for the Kubernetes API; default: the service account of the pod"`
	Labels           string `flag:"labels" modes:"run operate" help:"labels of pods that are part of identities: key prefixes, separated by spaces, with '!' for exclusions; default: the rules of Cilium"`
	GlobalNamespaces bool   `flag:"clustermesh-default-global-namespace" modes:"run operate" help:"export the services and pods of namespaces without the annotation clustermesh.cilium.io/global"`
}

func (c *Config) parseLocal(wrong *mistakes) {
	l := c.Local
	if l.Manifests != "" && l.FromKubernetes() {
		wrong.note("local-manifests/kubernetes", errors.New("one source describes the own cluster: give a directory or the Kubernetes API, not both"))
	}
	if info, err := os.Stat(l.Manifests); err == nil && !info.IsDir() {
		wrong.note("local-manifests", fmt.Errorf("%s is not a directory: give the one that holds the manifests", l.Manifests))
	}
	if l.Kubeconfig != "" {
		if _, err := os.ReadFile(l.Kubeconfig); err != nil {
			wrong.note("kubeconfig", err)
		}
	}
	c.PodLabels = parsed(wrong, "labels", publish.NewLabelFilter, l.Labels)
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
