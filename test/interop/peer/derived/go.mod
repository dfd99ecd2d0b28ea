// Stands for sigs.k8s.io/mcs-api/controllers, which module proxies do not have.
module sigs.k8s.io/mcs-api/controllers

go 1.26.0
