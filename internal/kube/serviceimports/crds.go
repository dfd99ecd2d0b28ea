package serviceimports

import (
	"context"
	_ "embed" // of the definitions
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

//go:embed crds/serviceexports.yaml
var exportDefinition []byte

//go:embed crds/serviceimports.yaml
var importDefinition []byte

// The labels of a definition, which prevent its replacement by an older one (mcs.md B, API surface).
const (
	labelRelease  = "multicluster.x-k8s.io/release-version"
	labelRevision = "multicluster.x-k8s.io/crd-schema-revision"
)

func definitionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Definitions are those of the kinds of the MCS API, as they are installed.
func Definitions() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, text := range [][]byte{exportDefinition, importDefinition} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			return nil, fmt.Errorf("the definition of a kind of the MCS API: %w", err)
		}
		all = append(all, o)
	}
	return all, nil
}

// installCRDs applies the definitions where there are none, or older ones.
func (c *Controller) installCRDs(ctx context.Context) error {
	all, err := Definitions()
	if err != nil {
		return err
	}
	for _, wanted := range all {
		is, err := c.Writer.Get(ctx, definitionResource(), "", wanted.GetName())
		if err != nil {
			return err
		}
		if is != nil && !isOlder(is.GetLabels(), wanted.GetLabels()) {
			continue
		}
		if _, err := c.Writer.Apply(ctx, definitionResource(), wanted); err != nil {
			return err
		}
		c.Log.Info("Installed the definition of a kind of the MCS API", "definition", wanted.GetName(), "release", wanted.GetLabels()[labelRelease])
	}
	return nil
}

// isOlder reports whether a definition with these labels is older than one with those of the other. A definition
// without labels is older than the labels themselves; one whose labels cannot be parsed is not replaced.
func isOlder(is, than map[string]string) bool {
	if is[labelRelease] == "" {
		return true
	}
	a, errA := version.ParseSemantic(is[labelRelease])
	b, errB := version.ParseSemantic(than[labelRelease])
	if errA != nil || errB != nil {
		return false
	}
	if a.LessThan(b) || b.LessThan(a) {
		return a.LessThan(b)
	}
	revisionA, errA := strconv.Atoi(is[labelRevision])
	revisionB, errB := strconv.Atoi(than[labelRevision])
	return errA == nil && errB == nil && revisionA < revisionB
}
