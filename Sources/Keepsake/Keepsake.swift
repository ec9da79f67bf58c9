// What a game imports: one module, with the archive, old games' files, the names of versions and contents, and the
// store's errors in it.
@_exported public import KeepsakeArchive
@_exported public import KeepsakeInterchange
@_exported public import KeepsakeReplication
@_exported public import KeepsakeStore
