package manifests

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkPorts refuses the ports that an API server refuses. Without it they would be missing from the published entries.
func checkPorts(o metav1.Object) error {
	switch o := o.(type) {
	case *corev1.Service:
		for i, p := range o.Spec.Ports {
			if err := checkPort(fmt.Sprintf("spec.ports[%d]", i), p.Protocol, p.Port); err != nil {
				return err
			}
		}
	case *discoveryv1.EndpointSlice:
		for i, p := range o.Ports {
			protocol, number := corev1.ProtocolTCP, int32(1) // without a number it means every port, without a protocol TCP
			if p.Protocol != nil {
				protocol = *p.Protocol
			}
			if p.Port != nil {
				number = *p.Port
			}
			if err := checkPort(fmt.Sprintf("ports[%d]", i), protocol, number); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPort(where string, protocol corev1.Protocol, number int32) error {
	if number < 1 || number > math.MaxUint16 {
		return fmt.Errorf("%s.port %d: it is a number from 1 to 65535", where, number)
	}
	if !slices.Contains([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, protocol) {
		return fmt.Errorf("%s.protocol %q: it is TCP, UDP or SCTP, in capitals", where, protocol)
	}
	return nil
}
