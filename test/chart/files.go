package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"helm.sh/helm/v4/pkg/chart/common"
)

// Monitoring returns the files of deploy/monitoring for the chart: rules.yaml and
// dashboards/*.json, by their names. A chart can only read files in its own folder, so it has
// copies in files/. Without the directory there are no files.
func Monitoring(deploy string) (map[string][]byte, error) {
	return readFiles(filepath.Join(deploy, "monitoring"))
}

// Copies returns the same of the chart's own folder.
func Copies(deploy string) (map[string][]byte, error) {
	return readFiles(filepath.Join(deploy, "chart", "files"))
}

func readFiles(dir string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "dashboards", "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, path := range append(names, filepath.Join(dir, "rules.yaml")) {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name, outside := filepath.Rel(dir, path)
		if err := errors.Join(err, outside); err != nil {
			return nil, err
		}
		all[filepath.ToSlash(name)] = data
	}
	return all, nil
}

// CopyMonitoring makes the chart's files those of deploy/monitoring. Without that directory
// they stay as they are.
func CopyMonitoring(deploy string) error {
	if _, err := os.Stat(filepath.Join(deploy, "monitoring")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	from, err := Monitoring(deploy)
	if err != nil {
		return err
	}
	old, err := Copies(deploy)
	if err != nil {
		return err
	}
	to := filepath.Join(deploy, "chart", "files")
	for name := range old {
		if _, stays := from[name]; !stays {
			if err := os.Remove(filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	for name, data := range from {
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

// Sample are rules and a dashboard for tests, which the golden files are made with: they do not
// change with those of the project.
func Sample() []*common.File {
	return []*common.File{
		{Name: "files/rules.yaml", Data: []byte("groups:\n- name: mesh-agent\n  rules:\n  - {alert: Absent, expr: absent(up)} # {{ $labels }}\n")},
		{Name: "files/dashboards/Mesh_agent.json", Data: []byte(`{"title": "{{ mesh }}"}`)},
	}
}
