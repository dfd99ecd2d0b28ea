package wire

// Source is the origin of a piece of information. A greater Source is a stronger one; the zero value,
// SourceUnknown, is the weakest (wire.md §4.1).
type Source uint8

// The sources, weakest first.
const (
	SourceUnknown        Source = iota // none, or a name that is not known
	SourceUnspec                       // "unspec"
	SourceRestored                     // "restored": from before a restart
	SourceGenerated                    // "generated"
	SourceAPI                          // "api": a caller of a local API
	SourceDirectory                    // "directory": a file
	SourceClusterMesh                  // "clustermesh": a remote cluster
	SourceKubernetes                   // "k8s"
	SourceCustomResource               // "custom-resource"
	SourceKVStore                      // "kvstore": the local cluster's kvstore
	SourceLocal                        // "local": this machine
	SourceKubeAPIServer                // "kube-apiserver"
	sourceEnd
)

// MayReplace reports whether information from this source may replace existing
// information: it may when it is at least as strong.
func (s Source) MayReplace(existing Source) bool { return s >= existing }

// String returns the source's name; that of SourceUnknown is empty.
func (s Source) String() string {
	names := [...]string{
		"", "unspec", "restored", "generated", "api", "directory", "clustermesh", "k8s", "custom-resource", "kvstore", "local", "kube-apiserver",
	}
	if int(s) >= len(names) {
		return ""
	}
	return names[s]
}

// ParseSource returns the source of this name, and SourceUnknown for any other
// text: unknown sources are alike, and weaker than every known one.
func ParseSource(name string) Source {
	for s := SourceUnspec; s < sourceEnd; s++ {
		if s.String() == name {
			return s
		}
	}
	return SourceUnknown
}
