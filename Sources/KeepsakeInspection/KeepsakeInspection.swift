// What a tool imports: one module, with the archive's values, limits and errors in it.
@_exported public import KeepsakeArchive
