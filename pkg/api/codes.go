package api

import (
	"net/http"
	"reflect"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Codes is the answer of /v1/codes.
type Codes struct {
	Items []codes.Entry `json:"items" doc:"Everything that an agent of this version can find, sorted by code."`
}

// codesRoute gives the registry, for those who show codes and have none of their own.
func codesRoute() route {
	return route{
		path: "/v1/codes", id: "codes", summary: "What the codes of findings mean, and what to do about each.",
		answer: reflect.TypeFor[Codes](), handle: func(w http.ResponseWriter, _ *http.Request) error {
			writeJSON(w, Codes{codes.All()})
			return nil
		},
	}
}
