package codes

// What a mirror finds about its own etcd.
const (
	OwnEtcdFull    Code = "MESH-7020"
	OwnEtcdRoom    Code = "MESH-7021"
	OwnEtcdUnknown Code = "MESH-7022"
)

// makeRoom is what to do about an etcd that is nearly full.
const makeRoom = "Find out what fills it: 'mesh-agent get clusters' on the mirror counts what each remote cluster has, and --remote-budget gives one less. See that old revisions are compacted (etcd's --auto-compaction-retention), defragment it if its file is much larger than what is in use, or give it a larger --quota-backend-bytes."

func mirror() []Entry {
	return []Entry{
		{
			Code: OwnEtcdFull, Severity: Error, Title: "copying is stopped: the own etcd is nearly full",
			Cause:  "At its quota etcd takes no writes any more, from anybody, and the own cluster stops allocating. So the mirror puts nothing there from 80 % of the quota on (--own-kvstore-stop-at). Deletions go on; what was copied stays and becomes old.",
			Remedy: makeRoom + " Copying goes on by itself when there is room.",
		},
		{
			Code: OwnEtcdRoom, Severity: Info, Title: "the own etcd has room",
			Cause: "It is not nearly full, or not any more: copying goes on.", Remedy: "Nothing to do.",
		},
		{
			Code: OwnEtcdUnknown, Severity: Warning, Title: "the own etcd does not tell how full it is",
			Cause:  "It did not answer a question about itself, or the mirror's user may not ask it. Copying goes on, and stops only when etcd refuses to write.",
			Remedy: "Look at the own etcd, and at the rights of the mirror's user there.",
		},
	}
}
