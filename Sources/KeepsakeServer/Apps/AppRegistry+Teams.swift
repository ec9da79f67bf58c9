#if Cloud
import Crypto
import Foundation
package import KeepsakeReplication

/// Teams of apps, and the containers that a team's apps share.
extension AppRegistry {
  /// Apps of one studio. An app is in one team at most.
  package struct Team: Hashable, Sendable, Codable {
    package var name: String
    package var createdMilliseconds: Int64
    /// The oldest first.
    package var shares: [Share] = []

    var isWhole: Bool { shares.allSatisfy { $0.shareID != nil && $0.access.allSatisfy { $0.appID != nil } } }
  }

  /// A container that the apps of a team may use, of each player another one.
  package struct Share: Hashable, Sendable, Codable {
    /// By which games name it.
    package var name: String
    /// 16 hexadecimal digits, in the place of an app's: what is valid in this container only has them.
    package var id: String
    package var createdMilliseconds: Int64
    package var access: [Access] = []

    /// Nil for anything else.
    var shareID: AppID? { AppID(text: id) }
  }

  /// What an app may do with a shared container. That of an app that isn't entitled any more stays, so that its devices
  /// are told.
  package struct Access: Hashable, Sendable, Codable {
    /// The app's id.
    package var app: String
    /// Nil if it may do nothing.
    package var access: ContainerAccess?

    var appID: AppID? { AppID(text: app) }
  }

  /// More than any studio has.
  private static let maximumTeams = 1_000
  private static let maximumShares = 100

  /// Creates a team without apps.
  ///
  /// - Parameter name: 1 to 64 visible ASCII characters. No two teams have the same.
  /// - Throws: A `ServerError` with `configuration` for a name that isn't allowed or that a team has.
  package func createTeam(_ name: String) throws {
    try Self.check(name, "A team's")
    try change { _, teams in
      guard !teams.contains(where: { $0.name == name }) else {
        throw ServerError(.configuration, "There is a team named \(name) already.")
      }
      guard teams.count < Self.maximumTeams else {
        throw ServerError(.configuration, "There are \(Self.maximumTeams) teams already.")
      }
      teams.append(Team(name: name, createdMilliseconds: clock()))
    }
  }

  /// Adds an app to a team. That changes nothing of what the app may do, until it is entitled to something.
  ///
  /// - Throws: A `ServerError` if there is no such team or app, or the app is in another team.
  package func add(_ app: String, to team: String) throws {
    try change { apps, teams in
      _ = try Self.index(of: team, in: teams)
      let index = try Self.index(ofApp: app, in: apps)
      guard apps[index].team == nil || apps[index].team == team else {
        throw ServerError(
          .configuration, "The app \(app) is in the team \(apps[index].team ?? ""): remove it from there first.")
      }
      apps[index].team = team
    }
  }

  /// Removes an app from its team, with its rights to all of the team's containers.
  ///
  /// - Throws: A `ServerError` if there is no such team or app, or the app isn't in it.
  package func remove(_ app: String, from team: String) throws {
    try change { apps, teams in
      let (place, index) = try Self.member(app, of: team, apps, teams)
      apps[index].team = nil
      for share in teams[place].shares.indices {
        for entry in teams[place].shares[share].access.indices
        where teams[place].shares[share].access[entry].app == apps[index].id {
          teams[place].shares[share].access[entry].access = nil
        }
      }
    }
  }

  /// Creates a shared container, which no app may use yet.
  ///
  /// - Parameter name: By which games name it: 1 to 64 of a-z, 0-9, `.` and `-`, as a folder may be called everywhere.
  ///   No two of a team have the same.
  /// - Throws: A `ServerError` with `configuration` for a name that isn't allowed or that the team has; `missing` for
  ///   a team that isn't there.
  package func share(_ name: String, in team: String) throws {
    if let objection = SharedContainerName.objection(to: name) {
      throw ServerError(.configuration, "This can't be its name: \(objection).")
    }
    var source = SystemRandomNumberGenerator()
    let id = AppID(word: source.next()).text
    try change { _, teams in
      let place = try Self.index(of: team, in: teams)
      guard !teams[place].shares.contains(where: { $0.name == name }) else {
        throw ServerError(.configuration, "The team \(team) has a shared container named \(name) already.")
      }
      guard teams[place].shares.count < Self.maximumShares else {
        throw ServerError(.configuration, "The team \(team) has \(Self.maximumShares) shared containers already.")
      }
      teams[place].shares.append(Share(name: name, id: id, createdMilliseconds: clock()))
    }
  }

  /// Says what an app of a team may do with one of its shared containers.
  ///
  /// - Parameter access: Nil for nothing: its devices play on with what they have, and are told.
  /// - Throws: A `ServerError` with `missing` if there is no such team, container or app, or the app isn't in the team.
  package func entitle(_ app: String, to share: String, of team: String, _ access: ContainerAccess?) throws {
    try change { apps, teams in
      let (place, index) = try Self.member(app, of: team, apps, teams)
      guard let found = teams[place].shares.firstIndex(where: { $0.name == share }) else {
        throw ServerError(
          .missing, "The team \(team) has no shared container named \(share.prefix(Self.names.upperBound)).")
      }
      let id = apps[index].id
      if let entry = teams[place].shares[found].access.firstIndex(where: { $0.app == id }) {
        teams[place].shares[found].access[entry].access = access
      } else if access != nil {
        teams[place].shares[found].access.append(Access(app: id, access: access))
      }
    }
  }

  private static func index(of team: String, in teams: [Team]) throws -> Int {
    guard let index = teams.firstIndex(where: { $0.name == team }) else {
      throw ServerError(.missing, "There is no team named \(team.prefix(names.upperBound)).")
    }
    return index
  }

  private static func index(ofApp name: String, in apps: [App]) throws -> Int {
    guard let index = apps.firstIndex(where: { $0.name == name && $0.revokedMilliseconds == nil }) else {
      throw ServerError(
        .missing, "There is no app named \(name.prefix(names.upperBound)): keepsake app list shows them.")
    }
    return index
  }

  private static func member(
    _ app: String, of team: String, _ apps: [App], _ teams: [Team]
  ) throws -> (team: Int, app: Int) {
    let (place, index) = (try Self.index(of: team, in: teams), try Self.index(ofApp: app, in: apps))
    guard apps[index].team == team else {
      throw ServerError(.missing, "The app \(app) isn't in the team \(team): add it first.")
    }
    return (place, index)
  }
}
#endif
