package api

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// Codes is the answer of /v1/codes.
type Codes struct {
	Items []CodeEntry `json:"items" doc:"All findings of this version, sorted by code."`
}

// CodeEntry says what a code means.
type CodeEntry struct {
	Code     string `json:"code"`
	Title    string `json:"title" doc:"The finding in a few words."`
	Severity string `json:"severity" enum:"info,warning,error"`
	Cause    string `json:"cause" doc:"The cause and the meaning."`
	Remedy   string `json:"remedy" doc:"The remedy."`
}

// codesRoute gives the registry, for those who show codes and have none of their own.
func codesRoute() route {
	return says("/v1/codes", "codes", "Meaning and remedy of each finding code.", func() Codes {
		return Codes{converted(codes.All(), func(e codes.Entry) CodeEntry {
			return CodeEntry{string(e.Code), e.Title, string(e.Severity), e.Cause, e.Remedy}
		})}
	})
}
