package kvstore

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ContentHash returns a hash of a client file and of every file that it names,
// so that a new authority makes a new session. A named file that cannot be read
// counts as such, so that its appearance makes another hash. The path of the
// client file itself has no influence: files of the same contents name the same
// session. It fails only when the file cannot be read.
func ContentHash(path string) ([32]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return [32]byte{}, err
	}
	return HashContent(content), nil
}

// HashContent is [ContentHash] for a client file that has been read already.
func HashContent(content []byte) [32]byte {
	h := sha256.New()
	add(h, content)
	for _, path := range NamedFiles(content) {
		data, err := os.ReadFile(path)
		add(h, []byte(path))
		if err != nil {
			add(h, []byte("unreadable"))
			continue
		}
		add(h, []byte("contents"))
		add(h, data)
	}
	return [32]byte(h.Sum(nil))
}

// add hashes the length too, so that no two sequences look alike.
func add(h hash.Hash, data []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}

// NamedFiles returns the paths of the authorities, certificate and key that a
// client file names: sorted, each once. It returns none for a file that cannot
// be parsed.
func NamedFiles(content []byte) []string {
	var f struct {
		CertFile      string `json:"cert-file"`
		KeyFile       string `json:"key-file"`
		TrustedCAFile string `json:"trusted-ca-file"`
	}
	if err := yaml.Unmarshal(content, &f); err != nil {
		return nil
	}
	files := []string{f.CertFile, f.KeyFile, f.TrustedCAFile}
	files = slices.DeleteFunc(files, func(s string) bool { return strings.TrimSpace(s) == "" })
	slices.Sort(files)
	return slices.Compact(files)
}
