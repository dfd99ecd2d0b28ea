//go:build !before1.20

package main

// kinds are the kinds that the release knows.
func kinds() []kind {
	return []kind{clusterConfigs(), nodes(), services(), endpointSlices(), serviceExports(), identities(), addresses()}
}
