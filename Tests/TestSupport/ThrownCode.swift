/// Returns the code of the error that `body` throws.
///
/// - Parameter code: The code of the errors that are expected, such as `\GameDataError.code`.
/// - Returns: Nil if nothing is thrown, or an error of another type.
package func thrownCode<Failure: Error, Code>(
  _ code: KeyPath<Failure, Code>, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void
) async -> Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? Failure)?[keyPath: code]
  }
}
