#if Cloud
import Foundation

/// Where an operator has large contents kept: the setting `contents`.
enum ContentPlace: Hashable, Sendable {
  /// As rows of the database.
  case rows
  /// In a folder that all servers share.
  case folder(URL)
  /// In a bucket of an object storage that speaks the protocol of S3.
  case bucket(S3Address)

  /// Reads `rows`, `folder:PATH` or `s3://BUCKET/PREFIX?OPTIONS`.
  ///
  /// - Throws: `ServerError` with `configuration`.
  init(_ text: String) throws {
    if text == "rows" {
      self = .rows
    } else if text.hasPrefix("folder:") {
      let path = text.dropFirst("folder:".count)
      guard path.hasPrefix("/") else { throw Self.mistake(text, "a folder needs its whole path, folder:/PATH") }
      self = .folder(URL(fileURLWithPath: String(path), isDirectory: true))
    } else if text.hasPrefix("s3:") {
      self = .bucket(try S3Address(text))
    } else {
      throw Self.mistake(text, "it has to be rows, folder:/PATH or s3://BUCKET/PREFIX")
    }
  }

  static func mistake(_ text: String, _ what: String) -> ServerError {
    // What is before an @ may be a password.
    let shown = text.contains("@") ? "" : " \(text.prefix(200).debugDescription)"
    return ServerError(.configuration, "The place of contents\(shown) can't be used: \(what).")
  }

  /// Reads those of a server: contents are put in the first one, and looked for in the others, too.
  static func all(_ texts: [String]) throws -> [ContentPlace] {
    let places = try texts.map { try ContentPlace($0) }
    // Rows know a bucket by its name, wherever it is.
    let named = places.map { place in
      if case .bucket(let address) = place { address.name } else { "\(place)" }
    }
    guard Set(named).count == places.count else {
      throw ServerError(.configuration, "A place of contents is named twice, or two buckets have one name and prefix.")
    }
    return places.isEmpty ? [.rows] : places
  }
}
#endif
