#if Cloud
import ArgumentParser
import KeepsakeReplication

/// An id as an argument of a command. Any other text is refused before it becomes part of an address: `..` would be
/// another one.
struct IdentifierArgument<Kind>: ExpressibleByArgument {
  let id: Identifier<Kind>

  init?(argument: String) {
    guard let id = Identifier<Kind>(argument) else { return nil }
    self.id = id
  }
}

typealias PlayerArgument = IdentifierArgument<PlayerKind>
typealias DeviceArgument = IdentifierArgument<DeviceKind>
typealias VersionArgument = IdentifierArgument<VersionKind>
typealias OperationArgument = IdentifierArgument<OperationKind>
#endif
