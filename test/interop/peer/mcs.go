//go:build !before1.20

package main

import mcsv1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

type (
	serviceImportType = mcsv1.ServiceImportType
	servicePort       = mcsv1.ServicePort
)
