// Re-exports KeepsakeArchive, so that a tool imports one module for inspection and for the archive's values, limits and
// errors.
@_exported public import KeepsakeArchive
