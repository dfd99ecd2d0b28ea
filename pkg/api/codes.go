package api

// Codes is the answer of /v1/codes.
type Codes struct {
	Items []CodeEntry `json:"items" doc:"All findings of this version, sorted by code."`
}

// CodeEntry describes a code.
type CodeEntry struct {
	Code     string `json:"code"`
	Title    string `json:"title" doc:"The finding in a few words."`
	Severity string `json:"severity" enum:"info,warning,error"`
	Cause    string `json:"cause" doc:"The cause and the meaning."`
	Remedy   string `json:"remedy" doc:"The remedy."`
}
