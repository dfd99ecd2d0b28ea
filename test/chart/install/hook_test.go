package install

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
	"github.com/mesh-agent/mesh-agent/test/chart"
)

var (
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	daemons = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// job is what the job of etcd's users found when it ran.
type job struct {
	clientFile string
	early      bool // there was no DaemonSet yet
	err        error
}

// play waits for the job and sets its status, in place of the missing controllers.
func (w *world) play(ctx context.Context, status string) (found job) {
	const name = "mesh-agent-etcd-users"
	list := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	watch, err := w.objects.Resource(jobs).Namespace(chart.Namespace).Watch(ctx, list)
	if err != nil {
		return job{err: err}
	}
	defer watch.Stop()
	event, open := <-watch.ResultChan()
	if !open {
		return job{err: ctx.Err()}
	}
	_, err = w.objects.Resource(daemons).Namespace(chart.Namespace).Get(ctx, "mesh-agent", metav1.GetOptions{})
	found.early = apierrors.IsNotFound(err)
	configs := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	config, err := w.objects.Resource(configs).Namespace(chart.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return job{err: err}
	}
	found.clientFile, _, _ = unstructured.NestedString(config.Object, "data", "etcd-config")
	_, found.err = w.objects.Resource(jobs).Namespace(chart.Namespace).
		Patch(ctx, event.Object.(*unstructured.Unstructured).GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return found
}

// ended is the status of a job whose pod has ended.
func ended(condition, before, more string) string {
	now := time.Now().UTC().Format(time.RFC3339)
	one := func(name string) string {
		return `{"type": "` + name + `", "status": "True", "lastTransitionTime": "` + now + `", "reason": "Test", "message": "the test says so"}`
	}
	return `{"status": {"startTime": "` + now + `", ` + strings.ReplaceAll(more, "NOW", now) + ` "conditions": [` + one(before) + `, ` + one(condition) + `]}}`
}

// TestTheJobRunsFirst: it runs before any process that writes to etcd exists, and is removed after its success.
func TestTheJobRunsFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := load(t, filepath.Join(deploy, "chart"))
	run := func(do func() error, status string) (job, error) {
		t.Helper()
		ran := make(chan job, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { ran <- w.play(ctx, status) }()
		err := do()
		stop()
		return waittest.Receive(t, "the end of the job", ran), err
	}
	complete := ended("Complete", "SuccessCriteriaMet", `"completionTime": "NOW", "succeeded": 1,`)
	got, err := run(func() error { return w.install(t, c, values(t, "member")) }, complete)
	waittest.Must(t, err)
	waittest.Must(t, got.err)
	if !got.early || !strings.Contains(got.clientFile, "https://etcd-0.example:2379") {
		t.Errorf("the job ran when there was a DaemonSet, or without a client file: %+v", got)
	}
	w.check(t, golden(t, goldenOf("member")))

	// Again at an upgrade, but not without the value.
	got, err = run(func() error { return w.upgrade(t, c, values(t, "member")) }, complete)
	waittest.Must(t, err)
	waittest.Must(t, got.err)
	w.check(t, golden(t, goldenOf("member")))
	off := values(t, "member")
	off["etcdUsers"] = map[string]any{"enabled": false}
	waittest.Must(t, w.upgrade(t, c, off))
	w.check(t, golden(t, goldenOf("member")))

	// A failed job ends the upgrade, and stays so that its log can be read; the installed objects stay too.
	got, err = run(func() error { return w.upgrade(t, c, values(t, "member")) }, ended("Failed", "FailureTarget", `"failed": 1,`))
	waittest.Must(t, got.err)
	if err == nil || !strings.Contains(err.Error(), "pre-upgrade") {
		t.Errorf("the job failed: %v", err)
	}
	if _, err := w.objects.Resource(jobs).Namespace(chart.Namespace).Get(t.Context(), "mesh-agent-etcd-users", metav1.GetOptions{}); err != nil {
		t.Errorf("the job that failed: %v", err)
	}
}
