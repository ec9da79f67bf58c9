/// The form in which a board leaves as a file.
public enum ScoreFormat: Sendable, Hashable, CaseIterable {
  /// An XML property list: an array of dictionaries, as games kept their high scores of old.
  case propertyList
  /// The same in the binary form.
  case binaryPropertyList
  /// An array of objects with sorted keys, ending in a line feed.
  case json
}
