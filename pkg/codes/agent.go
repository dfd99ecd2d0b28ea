package codes

// What becomes of the agent's own surroundings.
const (
	FileIgnored         Code = "MESH-7001"
	FileTaken           Code = "MESH-7002"
	DirectoryUnreadable Code = "MESH-7003"
	DirectoryReadable   Code = "MESH-7004"
	DescriptionBroken   Code = "MESH-7005"
	DescriptionWell     Code = "MESH-7006"
	LogLevelChanged     Code = "MESH-7007"
)

// What the API says of the agent itself.
const ReadyWithout Code = "MESH-7011"

func ofAPI() []Entry {
	return []Entry{{
		Code: ReadyWithout, Severity: Warning, Title: "the agent is ready without some clusters",
		Cause:  "They were not synced when --clustermesh-sync-timeout had passed since the start. The view has nothing of them, or not everything.",
		Remedy: "'mesh-agent status' says what is wrong with each. They leave /readyz and the metric mesh_agent_clustermesh_ready_without_clusters once they are synced.",
	}}
}

func agent() []Entry {
	const nothing = "Nothing to do."
	return []Entry{
		{
			Code: FileIgnored, Severity: Warning, Title: "a file of the mesh directory is ignored",
			Cause:  "It looks like a client file, but cannot be a cluster's: usually its name is no cluster name.",
			Remedy: "Name it after its cluster, or remove it. 'mesh-agent config check' says more.",
		},
		{
			Code: FileTaken, Severity: Info, Title: "a file of the mesh directory is not ignored any more",
			Cause: "It is gone, or it can be used now.", Remedy: nothing,
		},
		{
			Code: DirectoryUnreadable, Severity: Warning, Title: "the mesh directory cannot be read",
			Cause:  "It does not exist, or reading it failed. What is known from before is kept, and no cluster is added or removed.",
			Remedy: "Create it, or correct its mode or its mount: --clustermesh-config names it. It is tried again each second.",
		},
		{
			Code: DirectoryReadable, Severity: Info, Title: "the mesh directory can be read again",
			Cause: "What is in it counts.", Remedy: nothing,
		},
		{
			Code: DescriptionBroken, Severity: Warning, Title: "the description of the own cluster is not whole",
			Cause:  "Its source, manifests or the Kubernetes API, cannot be read, or some of its objects make no sense. What was known of these before stays in force and stays published.",
			Remedy: "Correct what the event names; it is read again by itself. 'mesh-agent get health' has the present state.",
		},
		{
			Code: DescriptionWell, Severity: Info, Title: "the description of the own cluster is whole again",
			Cause: "Everything in it can be read, and counts.", Remedy: nothing,
		},
		{
			Code: LogLevelChanged, Severity: Info, Title: "the level of the log was changed",
			Cause:  "Somebody asked for it over the unix socket. It lasts until the agent ends.",
			Remedy: "Nothing to do. 'mesh-agent log-level' changes it.",
		},
	}
}
