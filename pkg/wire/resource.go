package wire

// Resource is a kind of entry that clusters exchange. Its [Description] has the properties that other packages
// need.
type Resource string

// The resources, in the order of wire.md.
const (
	Nodes          Resource = "nodes"
	Services       Resource = "services"
	EndpointSlices Resource = "endpointslices"
	ServiceExports Resource = "serviceexports"
	Identities     Resource = "identities"
	IPs            Resource = "ips"
)

// Description has all properties of a resource except the form of its values. A new resource needs one more
// Description.
type Description struct {
	// Path is its part of a key, with its version.
	Path string
	// One and Many name its entries in sentences, Field is its member in JSON.
	One, Many, Field string
	// Optional: readers do not wait for it, and do not need the right to read it. Its state is not part of the
	// state of its cluster. (A mirror waits: it copies everything.)
	Optional bool
	// DetailOf is the resource to which it only adds details, in a cluster that exports
	// both: readers wait for it a short time. Empty is none.
	DetailOf Resource
	// OfServices: it has services or their backends. They are withheld when there is no contact with their
	// cluster.
	OfServices bool
	// Keys and Bytes are the default limits of the entries that are read from a cluster, and of their bytes.
	// CopyBytes is the default limit of the bytes that a mirror copies (pkg/budget).
	Keys             int
	Bytes, CopyBytes int64

	exported func(Capabilities) bool // nil: always
}

const mib = 1 << 20

// Resources returns every resource.
func Resources() []Resource {
	return []Resource{Nodes, Services, EndpointSlices, ServiceExports, Identities, IPs}
}

// Describe returns the description of the resource; that of an unknown one is made from its name alone.
func (r Resource) Describe() Description {
	switch r {
	case Nodes:
		return Description{
			Path: "nodes/v1", One: "node", Many: "nodes", Field: "nodes",
			Keys: 20_000, Bytes: 128 * mib, CopyBytes: 64 * mib, // 1 to 3 KiB each
		}
	case Services:
		return Description{
			Path: "services/v1", One: "service", Many: "services", Field: "services", OfServices: true,
			Keys: 50_000, Bytes: 512 * mib, CopyBytes: 64 * mib, // with their backends, 100 bytes each
			exported: func(c Capabilities) bool { return c.EndpointSlicesExportMode != EndpointSlicesOnly },
		}
	case EndpointSlices:
		return Description{
			Path: "endpointslices/v1", One: "endpoint slice", Many: "endpoint slices", Field: "endpointSlices",
			DetailOf: Services, OfServices: true,
			Keys: 100_000, Bytes: 256 * mib, CopyBytes: 64 * mib, // compressed, up to 100 endpoints each
			exported: func(c Capabilities) bool { return c.EndpointSlicesExportMode != EndpointSlicesServicesOnly },
		}
	case ServiceExports:
		return Description{
			Path: "serviceexports/v1", One: "service export", Many: "service exports", Field: "serviceExports",
			Optional: true, OfServices: true,
			Keys: 50_000, Bytes: 64 * mib, CopyBytes: 16 * mib, // a few hundred bytes each
			exported: func(c Capabilities) bool { return c.ServiceExportsEnabled != nil && *c.ServiceExportsEnabled },
		}
	case Identities:
		return Description{
			Path: "identities/v1", One: "identity", Many: "identities", Field: "identities",
			Keys: 65_536, Bytes: 256 * mib, CopyBytes: 64 * mib, // all numbers of a cluster
		}
	case IPs:
		return Description{
			Path: "ip/v1", One: "address", Many: "addresses", Field: "ips",
			Keys: 1_000_000, Bytes: 1024 * mib, CopyBytes: 320 * mib, // about 300 bytes each
		}
	}
	return Description{Path: string(r) + "/v1", One: string(r), Many: string(r), Field: string(r)}
}

// Required reports whether readers cannot use any cluster without the resource.
func (d Description) Required() bool { return !d.Optional && d.DetailOf == "" }

// Exports reports whether the cluster writes the resource at all.
func (c Capabilities) Exports(r Resource) bool {
	exported := r.Describe().exported
	return exported == nil || exported(c)
}

// Details reports whether the resource only adds details to another one that the cluster exports.
func (c Capabilities) Details(r Resource) bool {
	of := r.Describe().DetailOf
	return of != "" && c.Exports(of)
}
