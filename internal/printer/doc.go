// Package printer writes lists and objects for a person or a program: as a
// table, as JSON, as YAML or as names.
//
// Lists are written as they come. A table takes the widths of its columns from
// the first [sampleRows] rows, so a list of a million items needs no more
// memory than a short one; a later cell that is too wide moves its row only.
//
// Texts may come from another cluster. In tables, control characters are
// written as escapes: no remote can move the cursor of a terminal.
//
// Concurrency: every call belongs to its caller. Nothing is kept between calls.
package printer
