package view

import "context"

// deliver sends the changes of each object since the reader's position, one by one, with a snapshot that is not older.
// A reader that is cut off has the state of the last token that it was sent. A change of an object that the reader has
// is left out when a newer change of it is in the same page.
func (s *Stream) deliver(ctx context.Context, now *Snapshot, entries []feedEntry) error {
	bySub := make(map[int]*Subscription, len(s.subs))
	for _, sub := range s.subs {
		bySub[sub.index] = sub
	}
	names := make([]name, len(entries))
	newest := make(map[name]int, len(entries))
	for i, e := range entries {
		if sub := bySub[e.resource]; sub != nil && e.object != nil {
			names[i] = name{e.resource, sub.kind.key(e.object)}
			newest[names[i]] = i
		}
	}
	var left map[name]any // the last version that the reader has, of objects of which a change was left out
	for i, e := range entries {
		sub := bySub[e.resource]
		if sub == nil || e.object == nil {
			continue
		}
		sentBefore, has := s.changes(now, sub, e, names[i].key)
		if has && sentBefore && newest[names[i]] != i {
			if _, earlier := left[names[i]]; !earlier {
				if left == nil {
					left = make(map[name]any)
				}
				left[names[i]] = e.before
			}
			continue
		}
		if earlier, is := left[names[i]]; is {
			e.before = earlier
			delete(left, names[i])
		}
		if err := s.deliverOne(ctx, now, sub, e, sentBefore, has, s.position+uint64(i)+1); err != nil {
			return err
		}
	}
	for _, sub := range s.subs {
		if err := s.lookAgain(ctx, now, sub, entries, s.position+uint64(len(entries))); err != nil {
			return err
		}
	}
	return nil
}

// name identifies an object among those of all kinds.
type name struct {
	kind int
	key  string
}

// lookAgain sends the objects that newly pass the filter, or no longer pass it, because an object of another kind
// changed.
func (s *Stream) lookAgain(ctx context.Context, now *Snapshot, sub *Subscription, entries []feedEntry, position uint64) error {
	other := sub.Filter.DependsOn()
	if other == "" {
		return nil
	}
	kind := s.v.indexOf(other)
	var changed []any
	for _, e := range entries {
		if e.resource == kind && e.object != nil {
			changed = append(changed, e.object)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for object := range sub.Filter.Affected(now, changed) {
		sentBefore, has := s.changes(now, sub, feedEntry{object: object}, sub.kind.key(object))
		if sentBefore == has {
			continue
		}
		if err := s.deliverOne(ctx, now, sub, feedEntry{object: object, before: object}, sentBefore, has, position); err != nil {
			return err
		}
	}
	return nil
}

// changes reports whether the reader has the object of a change, and whether it will have it afterwards. Both are false
// for an object that the filter excludes by its name.
func (s *Stream) changes(now *Snapshot, sub *Subscription, e feedEntry, key string) (sentBefore, has bool) {
	if !sub.Filter.MatchesName(e.object) {
		return false, false
	}
	return s.sentBefore(now, sub, e.before, key), !e.deleted && sub.Filter.Matches(now, e.object)
}

func (s *Stream) deliverOne(ctx context.Context, now *Snapshot, sub *Subscription, e feedEntry, sentBefore, has bool, position uint64) error {
	if !sentBefore && !has {
		return nil
	}
	out := Event{Type: Upsert, Position: position, Object: e.object, Snapshot: now, feed: s.v.feed}
	if !has {
		out.Type = Delete
	}
	if sentBefore {
		out.Before = e.before
	}
	return s.put(ctx, sub, out)
}

// sentBefore reports whether the reader has an object; before is the object's previous version.
func (s *Stream) sentBefore(now *Snapshot, sub *Subscription, before any, key string) bool {
	if sub.Filter.DependsOn() != "" {
		_, sent := sub.sent[key]
		return sent
	}
	return before != nil && sub.Filter.Matches(now, before)
}
