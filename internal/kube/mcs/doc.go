// Package mcs is the MCS API of Kubernetes (KEP-1645) as a pure core: from all clusters' exports of one service, and
// from the own cluster's objects for it, it computes the wanted objects of the own cluster.
//
//	exports of all clusters ──[Merge]──► what they are together, by [Precedence]
//	                                        │ with [Facts] of the own cluster
//	                                        ▼ [Make]
//	ServiceImport · derived Service · conditions of the own ServiceExport
//	                                        │ with the own Service and its slices
//	                                        ▼ [LocalSlices]
//	slices of the derived Service with the own backends
//
// The rules are those of docs/spec/mcs.md B. Where it says "Quirk", this does otherwise: ports are compared
// as sets, all reasons of a conflict are given, a timeout is a number, and a local export that is not
// valid does not keep the exports of others from being imported. Two gaps are filled: the session
// affinity is on the derived Service too, and ports without a name get one there, where Kubernetes
// demands it of a Service with several.
//
// Exports come from remote clusters. Names, labels and numbers that are not valid in Kubernetes are left out here, and
// lists and texts are bounded, so that no cluster can prevent the writing of another one's objects. The own cluster's
// export counts before all others, and labels and annotations of remote exports are on own objects only where
// [Allowed].
//
// Concurrency: functions of their arguments, which they do not change. Results share maps with them.
package mcs
