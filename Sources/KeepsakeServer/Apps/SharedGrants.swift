#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// By what right an app's devices use a shared container.
struct SharedGrant: Hashable, Sendable {
  var app: AppID
  /// The shared container's id, which codes and identities have that are valid in it only.
  var share: AppID
  /// Nil if the app may not use it any more.
  var access: ContainerAccess?

  /// What a token of such a device has in the place of the app: a hash of both, so that a token needs no more room, and
  /// one of the game itself is good for nothing there.
  var id: AppID {
    AppID(bytes: Data(SHA256.hash(data: Data("keepsake grant".utf8) + app.bytes + share.bytes).prefix(AppID.byteCount)))
  }
}

/// All rights to shared containers.
struct SharedGrants: Sendable {
  private var grants: [AppID: SharedGrant] = [:]
  private var names: [AppID: [String: AppID]] = [:]
  private var shares: [AppID: String] = [:]

  init(of teams: [AppRegistry.Team] = []) {
    for share in teams.flatMap(\.shares) {
      guard let id = share.shareID else { continue }
      shares[id] = share.name
      for access in share.access {
        guard let app = access.appID else { continue }
        let grant = SharedGrant(app: app, share: id, access: access.access)
        grants[grant.id] = grant
        // One that was withdrawn doesn't hide that of another team.
        if access.access != nil { names[app, default: [:]][share.name] = grant.id }
      }
    }
  }

  subscript(grant: AppID) -> SharedGrant? { grants[grant] }

  func grant(of app: AppID, to container: String) -> SharedGrant? { names[app]?[container].flatMap { grants[$0] } }

  /// Returns the name of a shared container; nil if there is none with this id.
  func name(of share: AppID) -> String? { shares[share] }
}
#endif
