/// A peer lost data, or a measurement can't be made.
public struct BenchmarkError: Error {
  public let message: String

  public init(message: String) { self.message = message }

  /// Throws unless what came back equals what went in: a peer that drops data doesn't count.
  public static func require(_ holds: Bool, _ message: String) throws {
    guard holds else { throw BenchmarkError(message: message) }
  }
}
