package simulate

import "slices"

// shrink returns a part of a plan that still fails, from which no step can be taken away, unless fails is called more
// than this many times before. The parts that are tried become smaller and smaller (delta debugging).
func shrink(p Plan, calls int, fails func(Plan) bool) Plan {
	for parts := 2; len(p) > 0 && calls > 0; {
		size, smaller := (len(p)+parts-1)/parts, false
		for from := 0; from < len(p) && calls > 0; {
			without := slices.Concat(p[:from], p[min(from+size, len(p)):])
			calls--
			if fails(without) {
				p, smaller = without, true
			} else {
				from += size
			}
		}
		switch {
		case smaller:
			parts = max(2, parts-1)
		case size <= 1:
			return p
		default:
			parts = min(len(p), 2*parts)
		}
	}
	return p
}
