/// Where something that is inspected comes from, as the caller has named it.
package struct InspectedSource: Sendable, Hashable {
  /// The file or the store.
  package var path: String
  /// The slot of the store.
  package var slot: String?
  /// The version of the slot: its whole id.
  package var version: String?

  package init(path: String, slot: String? = nil, version: String? = nil) {
    (self.path, self.slot, self.version) = (path, slot, version)
  }
}
