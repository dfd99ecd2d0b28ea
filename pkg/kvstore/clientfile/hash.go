package clientfile

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ContentHash returns a hash of everything that defines a session: the client file, the contents of
// the authorities that it names, and whether its certificate and key can be read. Certificate and key
// are read again on each handshake, so a rotated certificate needs no new session; a new authority
// does. Client files with the same contents have the same hash, independent of their own paths. It
// fails only when the file cannot be read.
func ContentHash(path string) ([32]byte, error) { return hashOf(path, HashContent) }

func hashOf(path string, hash func([]byte) [32]byte) ([32]byte, error) {
	content, err := readFile(path)
	if err != nil {
		return [32]byte{}, err
	}
	return hash(content), nil
}

// HashContent is [ContentHash] for a client file that has been read already.
func HashContent(content []byte) [32]byte {
	sum, _ := Digest(content)
	return sum
}

// Digest returns HashContent, and the paths of the files that the client file names, sorted and
// without duplicates. It returns no paths when the client file cannot be parsed.
func Digest(content []byte) (sum [32]byte, files []string) {
	h := sha256.New()
	add(h, content)
	f := namedFiles(content)
	for _, path := range []string{f.TrustedCAFile, f.CertFile, f.KeyFile} {
		data, err := readFile(path)
		add(h, []byte(path))
		switch {
		case err != nil:
			add(h, []byte("unreadable"))
		case path == f.TrustedCAFile:
			add(h, []byte("contents"))
			add(h, data)
		default:
			add(h, []byte("readable"))
		}
		if strings.TrimSpace(path) != "" {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return [32]byte(h.Sum(nil)), slices.Compact(files)
}

// Fingerprint returns a hash of the complete configuration: everything in [ContentHash], and the
// contents of certificate and key. It is a hash of secrets, so it is shown only as a [KeyedHash]. It
// fails only when the file cannot be read.
func Fingerprint(path string) ([32]byte, error) { return hashOf(path, FingerprintContent) }

// FingerprintContent is [Fingerprint] for a client file that has been read already.
func FingerprintContent(content []byte) [32]byte {
	h := sha256.New()
	sum := HashContent(content)
	add(h, sum[:])
	f := namedFiles(content)
	for _, path := range []string{f.CertFile, f.KeyFile} {
		data, _ := readFile(path) // HashContent includes whether it can be read
		add(h, data)
	}
	return [32]byte(h.Sum(nil))
}

// hashWith adds endpoints to the hash of a file.
func hashWith(file [32]byte, endpoints []string) [32]byte {
	h := sha256.New()
	add(h, file[:])
	for _, e := range endpoints {
		add(h, []byte(e))
	}
	return [32]byte(h.Sum(nil))
}

// add also hashes the length, so that different sequences of data do not get the same hash.
func add(h hash.Hash, data []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(data)))
	h.Write(n[:])
	h.Write(data)
}

// named are the files that a client file names.
type named struct {
	CertFile      string `json:"cert-file"`
	KeyFile       string `json:"key-file"`
	TrustedCAFile string `json:"trusted-ca-file"`
}

// namedFiles returns the files that a client file names; none when it cannot be parsed.
func namedFiles(content []byte) (f named) {
	if yaml.Unmarshal(content, &f) != nil {
		return named{}
	}
	return f
}

// NewKey returns a key for [KeyedHash], hexadecimal.
func NewKey() string {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return hex.EncodeToString(key)
}

// KeyedHash returns the HMAC, in hexadecimal, of a [Fingerprint] in hexadecimal. A client file has a password, and with
// a plain hash a reader of the hash could try passwords. The result for an empty text is empty.
func KeyedHash(key, contentHash string) string {
	if contentHash == "" {
		return ""
	}
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(contentHash)) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}
