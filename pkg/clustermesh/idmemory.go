package clustermesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// idMemory keeps the cluster IDs of remote clusters over restarts, in a small file. A failed read or
// write is only logged as a warning: the file prevents a cluster from taking the ID of another one that
// is not connected, and nothing else depends on it. Its owner holds a lock during all calls.
type idMemory struct {
	file string // empty: nothing is remembered over restarts
	ids  map[string]uint32
	log  *slog.Logger
}

// idFile is the JSON form of the file.
type idFile struct {
	Version int               `json:"version"`
	IDs     map[string]uint32 `json:"ids"` // by name
}

// maxIDFile bounds the file: names have 32 bytes at most, and there are 511 IDs.
const maxIDFile = 1 << 20

func newIDMemory(dir string, log *slog.Logger) *idMemory {
	m := &idMemory{ids: make(map[string]uint32), log: log}
	if dir == "" {
		return m
	}
	m.file = filepath.Join(dir, "cluster-ids.json")
	ids, err := readIDs(m.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		log.Warn("Cannot read the saved cluster IDs; the agent saves the IDs of the clusters again when they connect", "file", m.file, "error", err)
	default:
		m.ids = ids
	}
	return m
}

func readIDs(file string) (map[string]uint32, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxIDFile {
		return nil, fmt.Errorf("its %d bytes are too many", info.Size())
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var f idFile
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, err
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("version %d is not known", f.Version)
	}
	ids := make(map[string]uint32)
	for name, id := range f.IDs {
		if wire.ValidateClusterName(name) == nil && id != 0 && id <= wire.MaxConnectedClusters511 {
			ids[name] = id
		}
	}
	return ids, nil
}

// owner returns the cluster that had the ID last; empty for none.
func (m *idMemory) owner(id uint32) string {
	for name, has := range m.ids {
		if has == id {
			return name
		}
	}
	return ""
}

// note records that the cluster, and no other one, has the ID now.
func (m *idMemory) note(name string, id uint32) {
	if m.file == "" || m.ids[name] == id {
		return
	}
	maps.DeleteFunc(m.ids, func(_ string, has uint32) bool { return has == id })
	m.ids[name] = id
	m.save()
}

// left forgets the ID of a cluster that now has another one: otherwise two clusters
// that swap their IDs would wait for each other.
func (m *idMemory) left(name string, id uint32) {
	if has, known := m.ids[name]; known && has != id {
		delete(m.ids, name)
		m.save()
	}
}

// keep forgets clusters that are no longer wanted.
func (m *idMemory) keep(wanted func(name string) bool) {
	before := len(m.ids)
	maps.DeleteFunc(m.ids, func(name string, _ uint32) bool { return !wanted(name) })
	if len(m.ids) != before {
		m.save()
	}
}

func (m *idMemory) save() {
	if err := m.write(); err != nil {
		m.log.Warn("Cannot save the cluster IDs for a restart", "file", m.file, "error", err)
	}
}

// write replaces the file atomically: a reader gets the old file or the new one.
func (m *idMemory) write() error {
	content, err := json.Marshal(idFile{1, m.ids})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(m.file), ".cluster-ids-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // has no effect after the rename
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), m.file)
}
