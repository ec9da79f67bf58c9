#if Cloud && PostgreSQL
import KeepsakeReplication

/// A container lives in another database than the one that was asked, or is on its way: ask the directory anew.
struct NotHere: Error {
  var container: ContainerID?

  init(_ container: ContainerID?) { self.container = container }
}
#endif
