package api

import "context"

// deliver sends what became of each object since the client's position, change by
// change, with a view that is not older: where the client is cut
// off, what it has is the state of the last token that it was sent. Only that something
// changes which the client has, and will have a newer version of at once, is left out.
func (c *watching) deliver(ctx context.Context, v *view, entries []feedEntry) error {
	type name struct {
		resource int
		key      string
	}
	bySub := make(map[int]*subscription, len(c.subs))
	for _, sub := range c.subs {
		bySub[sub.index] = sub
	}
	names := make([]name, len(entries))
	newest := make(map[name]int, len(entries))
	for i, e := range entries {
		if sub := bySub[e.resource]; sub != nil && e.object != nil {
			names[i] = name{e.resource, sub.res.keyOf(e.object)}
			newest[names[i]] = i
		}
	}
	for i, e := range entries {
		sub := bySub[e.resource]
		if sub == nil || e.object == nil {
			continue
		}
		if err := c.deliverOne(ctx, v, sub, e, names[i].key, newest[names[i]] == i, c.position+uint64(i)+1); err != nil {
			return err
		}
	}
	for _, sub := range c.subs {
		if err := c.lookAgain(ctx, v, sub, entries, c.position+uint64(len(entries))); err != nil {
			return err
		}
	}
	return c.out.flush()
}

// lookAgain sends what passes the filters, or does not any more, since an object
// of another resource changed.
func (c *watching) lookAgain(ctx context.Context, v *view, sub *subscription, entries []feedEntry, position uint64) error {
	other := sub.leans()
	if other == "" {
		return nil
	}
	var changed []any
	for _, e := range entries {
		if e.resource == c.s.indexOf(other) && e.object != nil {
			changed = append(changed, e.object)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for object := range sub.res.affected(v, changed) {
		key := sub.res.keyOf(object)
		_, sent := sub.sent[key]
		if does := sub.res.may(&sub.query, object) && sub.res.does(c.s, v, &sub.query, object); does == sent {
			continue
		}
		if err := c.deliverOne(ctx, v, sub, feedEntry{object: object}, key, true, position); err != nil {
			return err
		}
	}
	return nil
}

// deliverOne sends one change, if it is one for the client.
func (c *watching) deliverOne(ctx context.Context, v *view, sub *subscription, e feedEntry, key string, newest bool, position uint64) error {
	if !sub.res.may(&sub.query, e.object) {
		return nil
	}
	had := c.had(v, sub, e.before, key)
	kind := WatchUpsert
	switch has := !e.deleted && sub.res.does(c.s, v, &sub.query, e.object); {
	case !has && !had, has && had && !newest:
		return nil
	case !has:
		kind = WatchDelete
	}
	return c.put(ctx, v, sub, c.s.feed.token(position), kind, e.object, position)
}

// had tells whether the client has an object, which was this before.
func (c *watching) had(v *view, sub *subscription, before any, key string) bool {
	if sub.leans() != "" {
		_, sent := sub.sent[key]
		return sent
	}
	return before != nil && sub.res.does(c.s, v, &sub.query, before)
}
