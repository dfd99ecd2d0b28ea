//go:build !before1.19

package main

import "github.com/cilium/cilium/pkg/identity"

func setServiceAccount(p *identity.IPIdentityPair, name string) { p.K8sServiceAccount = name }

func serviceAccount(p *identity.IPIdentityPair) string { return p.K8sServiceAccount }
