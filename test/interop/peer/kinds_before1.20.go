//go:build before1.20 && !before1.17

package main

// kinds are the kinds that the release knows: no endpoint slices.
func kinds() []kind {
	return []kind{clusterConfigs(), nodes(), services(), serviceExports(), identities(), addresses()}
}
