//go:build unix

package etcdserver
