//go:build before1.20 && !before1.17

package main

import mcsv1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

type (
	serviceImportType = mcsv1.ServiceImportType
	servicePort       = mcsv1.ServicePort
)
