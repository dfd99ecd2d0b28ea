//go:build before1.20 && !before1.18

package main

import (
	"context"

	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/logging"
)

func newClient(ctx context.Context, options map[string]string, extra kvstore.ExtraOptions) (kvstore.BackendOperations, chan error) {
	log := newLogger()
	logging.DefaultSlogLogger = log // some packages log by themselves
	return kvstore.NewClient(ctx, log, kvstore.EtcdBackendName, options, extra)
}

func newStores() store.Factory { return store.NewFactory(newLogger(), store.MetricsProvider()) }
