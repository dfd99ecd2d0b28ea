package clustermesh

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EntryVerdict is how an entry of the mesh directory is treated.
type EntryVerdict uint8

// The verdicts.
const (
	EntryOther      EntryVerdict = iota // not a client file
	EntryOwn                            // has the name of the own cluster, so it is not a remote cluster's
	EntryMisnamed                       // a client file whose name is not a valid cluster name
	EntryOverlooked                     // most likely meant to be a client file, but not recognized as one
	EntryUnreadable                     // cannot be read; it may be the client file of the cluster of its name
	EntryClient                         // the client file of the cluster of its name
)

// Entry is an entry of the mesh directory, as a running agent judges it.
type Entry struct {
	Name, Path string
	Verdict    EntryVerdict
	Reason     error  // why it cannot be used as a client file; nil if it can
	Content    []byte // of a client file
}

// Entries judges every entry of a mesh directory at this moment, as a running agent
// does, sorted by name. own is the name of the own cluster. It fails when the directory
// cannot be read.
func Entries(dir, own string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the mesh directory: %w", err)
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		entries = append(entries, examine(dir, f.Name(), own))
	}
	return entries, nil
}

// examine judges an entry of the mesh directory.
func examine(dir, name, own string) Entry {
	e := Entry{Name: name, Path: filepath.Join(dir, name)}
	content, err := readConfig(e.Path)
	badName := wire.ValidateClusterName(name)
	switch {
	case name == own:
		e.Verdict, e.Reason = EntryOwn, errors.New("it has the name of the own cluster, which is no remote one")
	case err != nil && !errors.Is(err, errNoClientFile) && badName == nil:
		// It may be a client file without the permission to read it. Then the cluster
		// fails, with the reason in its status, and is not drained.
		e.Verdict, e.Reason = EntryUnreadable, err
	case err != nil:
		e.Verdict, e.Reason = EntryOther, err
		if why := clientfile.Overlooked(content); why != "" && badName == nil {
			e.Verdict, e.Reason = EntryOverlooked, fmt.Errorf("%w; %s", err, why)
		}
	case badName != nil:
		e.Verdict, e.Reason = EntryMisnamed, fmt.Errorf("the file's name is no valid cluster name: %w", badName)
	default:
		e.Verdict, e.Content = EntryClient, content
	}
	return e
}
