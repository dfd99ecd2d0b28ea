package httpapi

import (
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// codesRoute returns the registry of codes, for clients that show codes and do not have it.
func codesRoute() route {
	return says("/v1/codes", "codes", "Meaning and remedy of each finding code.", func() api.Codes {
		return api.Codes{Items: converted(codes.All(), func(e codes.Entry) api.CodeEntry {
			return api.CodeEntry{Code: string(e.Code), Title: e.Title, Severity: string(e.Severity), Cause: e.Cause, Remedy: e.Remedy}
		})}
	})
}
