#if Cloud
import Hummingbird

/// Which methods each address of the server has, whatever method a request names.
struct Addresses: Sendable {
  private struct Address {
    /// The words between slashes; nil for one that may be anything.
    var words: [String?]
    var methods: [String]
  }
  private var addresses: [Address] = []

  init(_ routes: [(method: String, path: String)] = []) {
    let methods = Dictionary(grouping: routes, by: \.path).mapValues { $0.map(\.method).sorted() }
    addresses = methods.map { path, methods in
      Address(words: Self.words(path[...]).map { $0.hasPrefix("{") ? nil : String($0) }, methods: methods)
    }
    // As the router does: an address with a fixed word comes before one that takes any.
    addresses.sort { $0.words.count { $0 == nil } < $1.words.count { $0 == nil } }
  }

  /// Returns the methods of the address at a path; nil if there is none.
  func methods(at path: String) -> [String]? {
    let words = Self.words(path[...])
    return addresses.first { address in
      address.words.count == words.count && zip(address.words, words).allSatisfy { $0 == nil || $0 == String($1) }
    }?.methods
  }

  private static func words(_ path: Substring) -> [Substring] { path.split(separator: "/") }
}
#endif
