/// The file format in which a board is exported.
public enum ScoreFormat: Sendable, Hashable, CaseIterable {
  /// An XML property list: an array of dictionaries, as older games kept their high scores.
  case propertyList
  /// The same in the binary format.
  case binaryPropertyList
  /// An array of objects with sorted keys, ending in a line feed.
  case json
}
