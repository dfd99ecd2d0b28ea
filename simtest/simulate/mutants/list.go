package main

// mutant is an error: in a file a text, which occurs there once, is replaced by another one.
type mutant struct {
	name, file, old, new string
}

// mutants are errors that the judge has to find.
func mutants() []mutant {
	const follow, store, sync, mirror = "pkg/store/internal/follow/", "pkg/store/", "pkg/store/syncstore/", "internal/own/mirror/"
	const identities = "pkg/allocator/"
	return []mutant{
		{
			"sweep before the list is complete", follow + "follow.go",
			"if err != nil {\n\t\treturn err\n\t}\n\tk.Done(at)\n", "k.Done(at)\n\tif err != nil {\n\t\treturn err\n\t}\n",
		},
		{"resume without proof", follow + "resume.go", "if !k.Agrees(proof, past) {", "if !k.Agrees(proof, past) && past.Count < 0 {"},
		{"known as of the end of the list", follow + "state.go", "s.pending, s.status.AsOf = nil, start", "s.pending, s.status.AsOf = nil, time.Now()"},
		{"known as of a probe whose revision has not come", follow + "state.go", "case p.Head.Revision > s.applied.Revision:", "case p.Head.Revision < 0:"},
		{"a probe proves without a stream", follow + "state.go", "if p.Err != nil || s.stream == nil {", "if p.Err != nil {"},
		{"a compaction ends nothing", follow + "follow.go", "\"prefix\", s.Prefix)\n\t\t\tf.ListAgain()\n", "\"prefix\", s.Prefix)\n\t\t\tif at, err := s.Client.Head(ctx); err == nil {\n\t\t\t\tf.pos = at\n\t\t\t}\n"},
		{"an older event overwrites a newer one", store + "set.go", "} else if r := s.records.At(p); !s.listing && rev <= r.Rev {", "} else if r := s.records.At(p); !s.listing && rev < r.Rev-1000 {"},
		{"the list of another server is compared by revision", store + "set.go", "!s.listing && rev <= r.Rev {", "rev <= r.Rev {"},
		{"a list deletes nothing", store + "set.go", "if !s.records.IsSeen(p) {\n\t\treturn s.forget(p)", "if !s.records.IsSeen(p) && s.listing {\n\t\treturn s.forget(p)"},
		{"the last event of a batch is lost", store + "watch.go", "for i := range b.Events {\n\t\t\te := &b.Events[i]", "for i := range b.Events[:(len(b.Events)+1)/2] {\n\t\t\te := &b.Events[i]"},
		{"keys of ended leases are not written again", sync + "ledger.go", " || !l.leases.ours(r.Obj.lease)\n\t}\n\treturn r.Obj.marks.has(isUncertain)", "\n\t}\n\treturn r.Obj.marks.has(isUncertain)"},
		{"the event of a write is not awaited", sync + "ledger_writes.go", "default: // where the key was absent, and known as present: the event of another's deletion\n\t\tl.awaited[one.at] = awaited{rev: rev, hash: one.hash, deletes: one.deletes, absent: one.absent}\n\t\tr.Obj.marks |= isAwaited", "default:\n\t\tl.eventArrived(one.at)"},
		{"a write without an answer counts", sync + "outbox_send.go", "b.finish(unknown, 0, nil)", "b.finish(acknowledged, res.At.Revision, nil)"},
		{"stray keys stay", sync + "ledger.go", "r.Obj.marks.has(isPresent) && (l.complete || r.Obj.marks.has(isWithdrawn))", "r.Obj.marks.has(isPresent) && r.Obj.marks.has(isWithdrawn)"},
		{"a copy is as fresh as its source", mirror + "family.go", "if written.Pending == 0 && written.Err == \"\" {", "if written.Pending >= 0 {"},
		{"a copy loses deletions", mirror + "family.go", "f.sync.Delete(ch.Name)\n", "_ = ch.Name\n"},
		{"a removed cluster stays in the cache", mirror + "copy.go", "if c.KeepRemoved {", "if c.name != \"\" {"},
		{"a value that was asked for is not supplied", mirror + "family.go", "f.sync.Supply(name, value)", "_ = value"},
		{"a node that returned is deleted", store + "delayed.go", "delete(h.of, ch.Name)\n\t\tch.Old = gone.old", "ch.Old = gone.old"},
		{"answers of DNS are kept although the service changed", "internal/serve/dnsserver/kept.go", "return e != nil && e.key == *key && e.service.Value() == g", "return e != nil && e.key == *key && e.value != nil"},
		{"a key with another value is not written again", sync + "ledger.go", "!r.Obj.marks.has(isPresent) || r.Hash != r.Obj.want ||", "!r.Obj.marks.has(isPresent) ||"},
		{"keys that a list lacks count as present", sync + "ledger_present.go", "l.setAbsent(p, rev)\n", "l.update(p)\n"},
		{"deletions by others are not seen", sync + "ledger_present.go", "if deletes {\n\t\tl.setAbsent(p, e.ModRevision)\n\t} else {", "if !deletes {"},
		{"a copy is as fresh as its source, whatever its own etcd says", mirror + "family.go", "if written.AsOf.Before(st.AsOf) {", "if written.AsOf.IsZero() {"},
		{"the configuration of a removed cluster stays", mirror + "copy.go", "func(ctx context.Context) error { return c.configs.withdraw(ctx, c.name) },", "func(context.Context) error { return nil },"},
		{"a removed cluster keeps its entries", "pkg/remotecluster/cluster.go", "for _, s := range c.families {\n\t\ts.Drain()\n\t}\n\tc.step(drained)", "c.step(drained)"},
		{"a change that was left out stays the one before", "pkg/view/deliver.go", "\t\t\te.before = earlier\n", "\t\t\t_ = earlier\n"},
		{"a stream that goes on leaves one change out", "pkg/view/stream.go", "return position, known\n", "return position + 1, known\n"},
		{"a deletion is not sent to the readers of the changes", "pkg/view/deliver.go", "if !sentBefore && !has {", "if !has {"},
		{"the winner of an address is the cluster with the higher ID", "pkg/ipcache/entry.go", "if c := e.cluster.compare(o.cluster); c != 0 {", "if c := o.cluster.compare(e.cluster); c != 0 {"},
		{"an address that moves leaves its old claim", "pkg/ipcache/core.go", "if old != nil {\n\t\tc.update(old.place(), old, nil)\n\t}\n}\n\n// claimed", "}\n\n// claimed"},
		{"a slice of a service that is gone stays published", "internal/own/publish/services.go", "\t\ts.endpointSlices.Delete(name)\n", "\t\t_ = name\n"},
		{"our nodes are known as of the last answer, although one is still shown", "pkg/clustermesh/families.go", "st.Held, _ = o.delayed.AsOf()", "_, _ = o.delayed.AsOf()"},
		{"a list that was cut off is resumed", follow + "follow.go", "f.ListAgain()\n\tf.listing(true)", "f.listing(true)"},
		{"a session goes on with another server", "pkg/store/internal/follow/follow.go", "if s.Prefix != f.prefix {\n\t\tf.prefix, f.pos = s.Prefix, kvstore.Position{}", "if s.Prefix != f.prefix {\n\t\tf.prefix = s.Prefix"},
		{"slices of a cluster that was not read are written", "internal/kube/endpointslices/plan.go", "case s.Keep != nil && s.Keep(at.cluster):", "case s.Keep != nil && at.cluster == \"\":"},
		{"a Service without slices gets none of a cluster that comes later", "internal/kube/endpointslices/term.go", "\t\t\tif Eligible(svc) {", "\t\t\tif t.held[local.Name(svc)] != nil {"},
		{"pods of a namespace that is not global are published", "internal/own/publish/endpoints.go", " || !global(namespace, e.DefaultGlobalNamespace) {", " || namespace == nil && !e.DefaultGlobalNamespace {"},
		{"keys for which there was no room are not read again", store + "watch.go", "Incomplete: w.set.Lacks}", "Incomplete: nil}"},
		{"a refused write waits for an hour", sync + "ledger_failures.go", "due: now.Add(pause), why: why}", "due: now.Add(pause + time.Hour), why: why}"},
		{"an event that was cut off counts", "pkg/api/client/watch.go", "case \"id\":\n\t\t\tid = value\n", "case \"id\":\n\t\t\tid, w.token = value, value\n"},
		{"a deletion is sent over HTTP as a change", "internal/serve/httpapi/watch.go", "c.out.Put(e.Token(), string(e.Type), ", "c.out.Put(e.Token(), string(view.Upsert), "},
		{"a probe counts without a revision", follow + "state.go", "case p.Head.ClusterID != s.applied.ClusterID:", "case p.Head.ClusterID == 0:"},
		{"an allocation does not wait for the mappings", identities + "allocate.go", "if err == nil && referenced == NoID {", "if err == nil && referenced != NoID {"},
		{"the number that another node uses is not asked for", identities + "allocate.go", "try, err = c.candidate(text, referenced)", "try, err = c.candidate(text, referenced&NoID)"},
		{"a mapping is created without its lock", identities + "kvbackend/write.go", "kvstore.IfAbsent(), kvstore.Holding(lockOf(lock)))", "kvstore.IfAbsent())"},
		{"a reference is taken although the mapping is gone", identities + "kvbackend/write.go", "kvstore.Leased(), kvstore.IfOther(b.Paths.Mapping(id), []byte(key.GetKey())), kvstore.Holding(lockOf(lock)))", "kvstore.Leased(), kvstore.Holding(lockOf(lock)))"},
		{"references of ended leases are not written again", identities + "kvbackend/watch.go", "handler.OnReferencesLost() })", "_ = handler })"},
		{"a node refreshes no identity", identities + "core_jobs.go", "for _, u := range c.byID {\n\t\tc.addJob(u, now)", "for _, u := range c.byID {\n\t\t_ = u"},
		{"an identity that no pod has keeps its reference", identities + "jobs.go", "return a.backend.Release(ctx, j.id, j.key)", "return nil"},
		{"an identity in use is collected", identities + "kvbackend/gc.go", "case slices.Contains(users, id):", "case slices.Contains(users, id+1):"},
		{"a node that was cut off makes a second number", identities + "move.go", "if id == NoID && who.Own == NoID {", "if id == NoID && who.Own > NoID {"},
		{"an address that a backup brings back stays", "internal/own/register/register.go", "Sole: true", "Sole: false"},
		{"what a restored server lost is awaited for ever", "pkg/store/syncstore/ledger_present.go", "l.epoch++\n\tfor p := range l.awaited {", "for p := range l.awaited {\n\t\tbreak"},
		{"the key that was deleted last proves nothing", "pkg/store/syncstore/ledger_answers.go", "known && l.deleted.name != \"\" &&", "known && l.deleted.rev < 0 &&"},
		{"the session of a removed client file stays", "pkg/clustermesh/handle.go", "s.retire()\n\ts.stop()", "s.retire()"},
		{"a write that may still arrive is forgotten", sync + "ledger.go", "case !r.Obj.marks.has(isWanted | isPresent | isUncertain), ", "case !r.Obj.marks.has(isWanted | isPresent), "},
		{"messages about keys have no limit", identities + "jobs.go", "if !limit.Allow() {", "if limit.Burst() < 0 {"},
		{"a saved cluster ID is never given up", "pkg/clustermesh/idmemory.go", "known && has != id {\n\t\tdelete", "known && has == 0 {\n\t\tdelete"},
		{"a pod keeps the identity of its earlier labels", "internal/own/register/register.go", "id, _, err := n.ids.Allocate(ctx, labels)", "id, _, err := n.ids.Allocate(ctx, labels[1:])"},
		{"xDS removes what was not read yet", "internal/serve/xdsserver/cache.go", "case exists, follows && r.kind == endpointKind:", "case exists:"},
		{"a change of a service is not sent over xDS", "internal/serve/xdsserver/follow.go", "f.changed[serviceName{o.Namespace, o.Name}] = struct{}{}\n\t\tcase", "_ = o\n\t\tcase"},
	}
}
