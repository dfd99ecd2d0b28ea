//go:build before1.19

package main

import "github.com/cilium/cilium/pkg/identity"

// The release knows no service accounts.

func setServiceAccount(*identity.IPIdentityPair, string) {}

func serviceAccount(*identity.IPIdentityPair) string { return "" }
