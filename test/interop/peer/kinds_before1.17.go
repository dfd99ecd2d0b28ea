//go:build before1.17

package main

// kinds are the kinds that the release knows: neither endpoint slices nor service exports.
func kinds() []kind {
	return []kind{clusterConfigs(), nodes(), services(), identities(), addresses()}
}
