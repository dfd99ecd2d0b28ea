//go:build before1.18

package main

import (
	"context"
	"os"

	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/logging"
	"github.com/sirupsen/logrus"
)

func newClient(ctx context.Context, options map[string]string, extra kvstore.ExtraOptions) (kvstore.BackendOperations, chan error) {
	logging.DefaultLogger.SetOutput(os.Stderr)
	logging.DefaultLogger.SetFormatter(&logrus.JSONFormatter{})
	return kvstore.NewClient(ctx, kvstore.EtcdBackendName, options, &extra)
}

func newStores() store.Factory { return store.NewFactory(store.MetricsProvider()) }
