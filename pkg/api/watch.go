package api

// The events of a watch.
const (
	WatchUpsert     = "upsert"     // the object is there, as it is now
	WatchDelete     = "delete"     // the object, as it was, is gone
	WatchReset      = "reset"      // discard everything: the state follows from the beginning
	WatchSynced     = "synced"     // the state of this resource is complete; changes follow
	WatchDisconnect = "disconnect" // the agent ends the watch, with the reason
)
