// Package controllers has the one name that Cilium's code takes from the controllers of the MCS API. It is linked into
// the clustermesh-apiserver, which imports nothing itself.
package controllers

// DerivedServiceAnnotation is the annotation of an import with the name of its derived Service.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
