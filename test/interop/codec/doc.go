// Package codec tests the values: what one side encodes, the other decodes to the same object, and
// what one side refuses, the other refuses, for each release of Cilium that there is a peer of.
package codec
